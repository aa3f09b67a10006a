/** Helpers for elements of the page. */

export const main = document.querySelector('main')
export const nav = document.querySelector('nav')

export function create(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}

export function addButton(bar, textContent, onClick) {
  const button = create('button', { type: 'button', textContent })
  button.addEventListener('click', () => onClick(button))
  bar.append(button)
  return button
}

/** Lets lines break in a text. */
export const breakable = (text, places) =>
  text.split(places).flatMap((part, index) => (index > 0 ? [create('wbr'), part] : [part]))

/** Reads what the reader chose before. A browser that blocks cookies throws at each use of its storage. */
export function remembered(key) {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

/** Remembers a choice for the next visit; null forgets it. */
export function remember(key, value) {
  try {
    if (value === null) localStorage.removeItem(key)
    else localStorage.setItem(key, value)
  } catch {
    // The choice holds until the page is closed.
  }
}
