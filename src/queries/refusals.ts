/** No token of ours has that hash, or it was revoked; or no app has that client id. */
export class TokenUnknown extends Error {
  override name = 'TokenUnknown'
}

/** The token was valid once. */
export class TokenExpired extends Error {
  override name = 'TokenExpired'
}

/** The app has no connection with that token, whoever else may have one (section 7). */
export class ConnectionNotFound extends Error {
  override name = 'ConnectionNotFound'
  readonly appId: string

  constructor(appId: string) {
    super()
    this.appId = appId
  }
}
