# The service and the operator command, without a shell, a package manager or development dependencies.
#
#   docker build -t investment-data-query-service .
#   docker run --rm investment-data-query-service operator --help

FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No production dependency needs an install script, so npm runs none. Source maps and type declarations are two
# fifths of the packages. The service does not need them.
RUN npm ci --omit=dev --ignore-scripts && npm cache clean --force && rm package-lock.json .npmrc \
 && find node_modules -type f '(' -name '*.map' -o -name '*.d.ts' -o -name '*.d.[cm]ts' ')' -delete
COPY migrations migrations
COPY docs/reference/schema.sql docs/reference/schema.sql
COPY seeds seeds
# tools/ is not copied: the embedded database is for development only.
COPY src src
# As the command, `operator verify` runs this file by the entrypoint. In a container that runs, the other one is on the PATH.
COPY operator operator
RUN printf '%s\n' '#!/usr/local/bin/node --disable-sigusr1' "import('/app/src/operator/start.js').then(() => import('/app/src/operator/main.ts'))" > /usr/local/bin/operator \
 && chmod 755 /usr/local/bin/operator
# Starts the service once, as its user and without a database. Node.js then keeps the compiled modules, which saves a
# third of the processor time of each start. With other flags of V8, it would compile them again.
RUN mkdir node_modules/.cache && chown 1000 node_modules/.cache \
 && HOST=127.0.0.1 DATABASE_URL=postgres://127.0.0.1:1/none SHUTDOWN_DELAY_MS=0 NODE_ENV=production \
    setpriv --reuid=1000 --regid=1000 --clear-groups timeout 5 \
    node --disable-sigusr1 --disable-warning=ExperimentalWarning --max-semi-space-size=16 src/server.js \
  || test $? = 124
# System files that Node.js needs: its libraries, and the configuration of name and user lookups.
RUN mkdir -p /root-of-image/tmp /root-of-image/etc \
 && chmod 1777 /root-of-image/tmp \
 && cp /etc/nsswitch.conf /root-of-image/etc/ 2>/dev/null || true \
 && echo 'node:x:1000:1000::/app:/usr/sbin/nologin' > /root-of-image/etc/passwd \
 && echo 'node:x:1000:' > /root-of-image/etc/group \
 && ldd "$(command -v node)" | grep -o '/[^ ]*' | sort -u \
  | xargs -I '{}' cp -L --parents '{}' /root-of-image

FROM scratch
# Add the commit when you build: --build-arg COMMIT="$(git rev-parse HEAD)".
ARG COMMIT=
LABEL org.opencontainers.image.title="Investment Data Query Service" \
      org.opencontainers.image.description="Read-only HTTP API over PostgreSQL: transactions and transfer orders" \
      org.opencontainers.image.version="2.0.0" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=build /root-of-image /
COPY --from=build /usr/local/bin/node /usr/local/bin/operator /usr/local/bin/
COPY --from=build /app /app
WORKDIR /app
USER 1000:1000
ENV COMMIT=$COMMIT NODE_ENV=production HOST=0.0.0.0 PORT=3000 PATH=/usr/local/bin
EXPOSE 3000
# Without a limit, the space of new objects takes 70 MB more (docs/decisions/experiments.md#memory).
ENTRYPOINT ["/usr/local/bin/node", "--disable-sigusr1", "--disable-warning=ExperimentalWarning", "--max-semi-space-size=16"]
CMD ["src/server.js"]
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
  CMD ["/usr/local/bin/node", "-e", "require('node:http').get(`http://127.0.0.1:${process.env.METRICS_PORT || process.env.PORT}/health/ready`, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
