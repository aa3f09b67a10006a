/** Navigation: the contents, the section that is shown, and links to it. */
import { nav } from './dom.js'

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

const sections = [...contents.querySelectorAll('a')].map((link) => ({
  link,
  target: document.getElementById(link.hash.slice(1)),
}))

function markSection() {
  const { link } =
    sections.findLast(({ target }) => target.getBoundingClientRect().top < 120) ?? sections[0]
  if (link.ariaCurrent === 'true') return
  for (const section of sections) section.link.ariaCurrent = section.link === link ? 'true' : null
  link.scrollIntoView({ block: 'nearest' })
}
addEventListener('scroll', () => requestAnimationFrame(markSection), { passive: true })
markSection()
