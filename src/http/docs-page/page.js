/** Script of the page. Navigation, search and theme never wait for a request: the settings of the service come last. */
import './theme.js'
import './navigation.js'
import { showAddress, showCodeOf } from './code.js'
import { create, main, nav } from './dom.js'
import { fillForms } from './operations.js'
import { readSettings } from './settings.js'

/** Shows the address of the operator in the section Support. */
function showContact(url) {
  const link = create('a', { href: url }, url)
  main.querySelector('#support').after(create('p', { id: 'contact' }, 'Contact: ', link))
}

// A static import that fails would end the whole script, also the requests.
const searching = import('./search.js').catch(() => {
  nav.querySelector('#found').textContent = 'The search is not available: load the page again.'
})
const settings = await readSettings()
showAddress(settings)
const demoText = main.querySelector('#demo')
if (settings.demo) demoText.hidden = false
else demoText.remove()
if (settings.contact) showContact(settings.contact)
fillForms(settings)
await showCodeOf(settings)
await searching
// Readers of the page by a program wait for this.
main.dataset.settings = 'shown'

if (settings.demo) {
  const { showStories } = await import('./sandbox.js')
  await showStories(settings.demo)
}
