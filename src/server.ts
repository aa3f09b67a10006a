/** The first file in units and commands of earlier releases. */
import './server.js'
