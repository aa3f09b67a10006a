/** Code of the page: its colours, its buttons, and the address and tokens of this service. */
import { PLACEHOLDER } from '../openapi/code-samples.js'
import { addButton, breakable, create, main } from './dom.js'

const KEYWORDS =
  'as async await catch class const continue def else except export false for from function if import in let ' +
  'new null of public return static throw throws true try var void with'
const TOKENS = new RegExp(
  [
    /(?<comment>(?:#|\/\/) .*)/,
    /(?<name>"[^"\n]*"(?=:))/,
    /(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)/,
    /(?<number>(?<![\w.-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w-]))/,
    new RegExp(`(?<keyword>(?<![\\w.-])(?:${KEYWORDS.replaceAll(' ', '|')})(?![\\w-]))`),
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
)

/** Shows text with its tokens as elements, which have colours. */
export function showCode(code, text) {
  const parts = []
  let end = 0
  for (const { 0: token, index, groups } of text.matchAll(TOKENS)) {
    const className = Object.keys(groups).find((name) => groups[name] !== undefined)
    parts.push(
      text.slice(end, index),
      create('span', { className }, ...breakable(token, /(?<=[/?&])/)),
    )
    end = index + token.length
  }
  code.replaceChildren(...parts, text.slice(end))
}

/** Copies a text, and says so in the button. */
export async function copy(text, button) {
  const { textContent: label } = button
  if (navigator.clipboard) await navigator.clipboard.writeText(text)
  else {
    // Browsers have no clipboard on a page without TLS.
    const area = create('textarea', { value: text })
    button.after(area)
    area.select()
    document.execCommand('copy')
    area.remove()
  }
  button.textContent = 'Copied'
  setTimeout(() => {
    button.textContent = label
  }, 2_000)
}

/** Adds the button that copies the code of a block. */
function addCopy(block) {
  const button = addButton(block.querySelector('.bar'), 'Copy', () => {
    const pre = block.querySelector('pre:not([hidden])')
    return copy(pre.wholeText ?? pre.textContent, button)
  })
  button.className = 'copy'
}

/** Shows the code of a block with the address and the demo tokens of this service. */
function showBlock(block, { address, demo }) {
  for (const code of block.querySelectorAll('code')) {
    const original = code.textContent
    // The public tokens make the first sample run as it is copied. The others read them from the environment.
    const own = demo && block.id === 'first-sample' ? withTokens(original, demo) : original
    const text = own
      .replaceAll(PLACEHOLDER, address)
      .replace('{appToken}', demo?.appToken)
      .replace('{connectionToken}', demo?.connectionToken)
    showCode(code, text)
  }
}

const withTokens = (text, { appToken, connectionToken }) =>
  text.replace('$APP_TOKEN', appToken).replace('$CONNECTION_TOKEN', connectionToken)

for (const block of main.querySelectorAll('.code')) addCopy(block)

/** Shows the base URL of the API. */
export function showAddress({ address }) {
  for (const code of main.querySelectorAll('code.address'))
    code.textContent = code.textContent.replace(/^.*(?=\/api\/)/, address)
}

/** Limit in ms, so that the page never waits long for its script. */
const MAX_WORK = 10

/** Shows all code with the settings of this service, except for the samples, which follow their form. */
export async function showCodeOf(settings) {
  let start = performance.now()
  for (const block of main.querySelectorAll('.code:not(.samples)')) {
    showBlock(block, settings)
    if (performance.now() - start < MAX_WORK) continue
    await new Promise((done) => setTimeout(done))
    start = performance.now()
  }
}
