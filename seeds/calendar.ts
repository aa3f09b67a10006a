/** Last day of the sample data before the first `demo advance`: a Wednesday. */
export const FIRST_DAY = '2025-12-31'
