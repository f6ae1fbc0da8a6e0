/** The rules for secrets that a person may choose. They hold for environment variables and for files of the home. */

/** The shortest secret that is accepted anywhere, in characters. Generated ones have at least 26. */
export const minSecretLength = 16;
const maxRootKeyLength = 200;

/** A root key is sent in a header and, as a user name, before a colon. */
const sendable = /^[!-9;-~]*$/;
const controlCharacter = /\p{Cc}/u;

/** What is wrong with a root key; undefined when nothing is. */
export function findRootKeyFault(key: string): string | undefined {
  if (key.length === 0) return 'is empty';
  if (key.length < minSecretLength) return `is too short: a root key has at least ${minSecretLength} characters`;
  if (key.length > maxRootKeyLength) return `is too long: a root key has at most ${maxRootKeyLength} characters`;
  if (!sendable.test(key)) return 'is malformed: a root key has visible ASCII characters, without spaces and colons';
  return undefined;
}

/** What is wrong with a secret key; undefined when nothing is. Spaces are allowed: it may be a phrase. */
export function findSecretKeyFault(key: string): string | undefined {
  if (key.length === 0) return 'is empty';
  if (key.length < minSecretLength) return `is too short: a secret key has at least ${minSecretLength} characters`;
  if (controlCharacter.test(key)) return 'is malformed: a secret key has no control characters';
  return undefined;
}
