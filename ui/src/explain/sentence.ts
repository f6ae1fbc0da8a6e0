/**
 * Turns a clause of the server into a sentence: capitalizes it, unless it begins with a name (`shop/nightly`,
 * `key:root`), and adds a full stop. The server sends clauses so that they can be joined.
 */
export function sentence(clause: string, isBeginning = true, stop = '.'): string {
  const isWord = /^[a-z]+(?:[ ,]|: )/.test(clause);
  const begun = isBeginning && isWord ? clause.charAt(0).toUpperCase() + clause.slice(1) : clause;
  return /[.!?]$/.test(begun) ? begun : begun + stop;
}
