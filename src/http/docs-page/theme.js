/** Theme of the page: that of the system, unless the reader has chosen the other one. */
import { addButton, nav, remember, remembered } from './dom.js'

const THEME = 'theme'
const root = document.documentElement
const system = matchMedia('(prefers-color-scheme: dark)')
let chosen = remembered(THEME)

const themeButton = addButton(nav, '', () => {
  // The theme of the system needs no choice: the page then follows its changes.
  const other = isDark() ? 'light' : 'dark'
  chosen = system.matches === (other === 'dark') ? null : other
  remember(THEME, chosen)
  setTheme()
})
themeButton.className = 'theme'

const isDark = () =>
  root.dataset.theme === undefined ? system.matches : root.dataset.theme === 'dark'

function setTheme() {
  if (chosen) root.dataset.theme = chosen
  else delete root.dataset.theme
  themeButton.textContent = isDark() ? 'Light theme' : 'Dark theme'
}
system.addEventListener('change', setTheme)
setTheme()
