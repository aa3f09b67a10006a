interface System {
  React: { createElement(component: unknown, props: object): unknown }
}

interface Constraint {
  constraint: { value: string }
}

/**
 * A plugin of Swagger UI that leaves regular expressions out of the page, where descriptions say the
 * same in words. The document has them, for programs. Of this function, too, the page gets the source.
 */
export function withoutPatterns({ React }: System) {
  return {
    wrapComponents: {
      JSONSchema202012KeywordConstraint: (Original: unknown) => (props: Constraint) =>
        props.constraint.value.startsWith('matches ') ? null : React.createElement(Original, props),
    },
  }
}
