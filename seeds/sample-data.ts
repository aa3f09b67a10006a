/**
 * Apps and connections of the sample data. Their tokens are public: anyone can read these connections
 * in a seeded database, and nothing else.
 */
export const DEMO = {
  wealth: {
    app: 'demo-wealth',
    token: 'idq_demo_wealth_this_token_is_public',
    connections: {
      /** More than 5,000 portfolio transactions, with every type of both lists. */
      large: { token: 'DEMOLARGE1', label: 'Ten years of a busy portfolio' },
      /** Source of the examples in the documentation. */
      small: { token: 'DEMOSMALL1', label: 'A dozen rows' },
      empty: { token: 'DEMOEMPTY1', label: 'Nothing yet' },
    },
  },
  tax: {
    app: 'demo-tax',
    token: 'idq_demo_tax_this_token_is_public',
    connections: {
      /** The first app gets a 404 for it. */
      other: { token: 'DEMOOTHER1', label: 'A connection of another app' },
    },
  },
} as const
