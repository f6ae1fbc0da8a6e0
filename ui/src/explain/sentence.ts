/**
 * The server writes clauses, so that they can be joined. Alone a clause begins large, unless it begins with a name
 * (`shop/nightly`, `key:root`), and ends with a stop.
 */
export function sentence(clause: string, isBeginning = true, stop = '.'): string {
  const isWord = /^[a-z]+(?:[ ,]|: )/.test(clause);
  const begun = isBeginning && isWord ? clause.charAt(0).toUpperCase() + clause.slice(1) : clause;
  return /[.!?]$/.test(begun) ? begun : begun + stop;
}
