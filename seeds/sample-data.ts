/**
 * Apps and connections of the sample data. Their tokens are public: anyone can read these connections
 * in a seeded database, and nothing else.
 */
export const DEMO = {
  wealth: {
    app: 'demo-wealth',
    token: 'idq_demo_wealth_this_token_is_public',
    /** Expired: each request with it gets a 401. */
    expiredToken: 'idq_demo_expired_this_token_is_public',
    connections: {
      /** More than 5,000 portfolio transactions, with every type of both lists. */
      large: { token: 'DEMOLARGE1', label: 'Ten years of a busy portfolio' },
      /** Source of the examples in the documentation. */
      small: { token: 'DEMOSMALL1', label: 'A dozen rows' },
      empty: { token: 'DEMOEMPTY1', label: 'Nothing yet' },
      // Stories of a few rows. docs/sandbox.md and expected.json have their positions and gains.
      split: { token: 'DEMOSPLIT1', label: 'A split between two purchases' },
      merger: { token: 'DEMOMERGER1', label: 'A merger with cash' },
      scrip: { token: 'DEMOSCRIP1', label: 'A scrip dividend, with rights sold and converted' },
      isin: { token: 'DEMOISIN1', label: 'A change of ISIN' },
      late: { token: 'DEMOLATE1', label: 'A row of last year that comes late' },
      correction: { token: 'DEMOCORRECTION1', label: 'A corrected price' },
      cancel: { token: 'DEMOCANCEL1', label: 'A cancelled row' },
      unknown: { token: 'DEMOUNKNOWN1', label: 'UNKNOWN rows that get their types' },
      fraction: { token: 'DEMOFRACTION1', label: 'Fractions of shares' },
      foreign: { token: 'DEMOFOREIGN1', label: 'A foreign currency' },
      transfer: { token: 'DEMOTRANSFER1', label: 'A transfer to another portfolio' },
      gap: { token: 'DEMOGAP1', label: 'A history without its beginning' },
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
