/** A call that this server refuses. The assistant reads the message as the error of the tool. */
export class Refusal extends Error {}
