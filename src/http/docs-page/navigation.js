/** Navigation: the contents, the section that is shown, and links to it. */
import { main, nav } from './dom.js'

export const contents = nav.querySelector('#contents')
export const phone = matchMedia('(max-width: 56rem)')
// On a wide screen, the style sheet shows the contents.
phone.addEventListener('change', () => {
  contents.open = false
})

/** Opens and shows the target of the address. Earlier releases had `#/tag/operation`. */
export function showTarget() {
  let id
  try {
    id = decodeURIComponent(location.hash).slice(1).split('/').at(-1)
  } catch {
    // `%zz` is no character.
  }
  const target = id && document.getElementById(id)
  if (!target) return
  for (let each = target.closest('details'); each; each = each.parentElement.closest('details'))
    each.open = true
  target.scrollIntoView()
}
addEventListener('hashchange', showTarget)
addEventListener('popstate', showTarget)
showTarget()

/** Links of the contents by their sections. */
const links = new Map()
for (const link of contents.querySelectorAll('a'))
  links.set(document.getElementById(link.hash.slice(1)).closest('section, .operation'), link)

/** Finds the last of these sections that begins above the text that is read. */
const currentOf = (sections) =>
  sections.findLast((section) => section.getBoundingClientRect().top < 120)

function markSection() {
  const sections = [...links.keys()]
  const section = currentOf([...main.children].filter((child) => links.has(child))) ?? sections[0]
  // Positions in another section would make the browser lay it out.
  const part = currentOf(sections.filter((each) => each.parentElement === section))
  const link = links.get(part ?? section)
  if (link.ariaCurrent === 'true') return
  for (const other of links.values()) other.ariaCurrent = other === link ? 'true' : null
  if (!phone.matches || contents.open) link.scrollIntoView({ block: 'nearest' })
}
const markSoon = () => requestAnimationFrame(markSection)
addEventListener('scroll', markSoon, { passive: true })
markSoon()
