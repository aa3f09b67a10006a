/** Ends the program with a sentence in a version of Node.js without what the other modules need. Import it first. */
const [major = 0, minor = 0] = process.version.slice(1).split('.').map(Number)
if (major < 22 || (major === 22 && minor < 13)) {
  process.stderr.write(
    `This program needs Node.js 22.13 or later, and this is ${process.version}.\n`,
  )
  process.exit(2)
}

export {}
