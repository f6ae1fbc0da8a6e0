/** Generates secrets, and checks secrets that a user chooses in an environment variable or a file. */
import { randomBytes } from 'node:crypto';

/** The minimum length of any secret, in characters. Generated ones have 36. */
export const minSecretLength = 16;
const maxKeyLength = 200;

/**
 * 128 random bits, with a prefix that secret scanners can recognize. Lower-case: Routemaster's client takes only keys of the
 * characters `[a-z0-9_-]`.
 */
export function newSecret(prefix: 'mrk_' | 'mrs_' | 'mrl_'): string {
  return prefix + randomBytes(16).toString('hex');
}

/** A key is sent in a header and, as a user name, before a colon. */
const sendable = /^[!-9;-~]*$/;
const controlCharacter = /\p{Cc}/u;

/** The fault of a key of the API, such as a root key; undefined: it is valid. */
export function findKeyFault(key: string, what: string): string | undefined {
  if (key.length === 0) return 'is empty';
  if (key.length < minSecretLength) return `is too short: ${what} has at least ${minSecretLength} characters`;
  if (key.length > maxKeyLength) return `is too long: ${what} has at most ${maxKeyLength} characters`;
  if (!sendable.test(key)) return `is malformed: ${what} has visible ASCII characters, without spaces and colons`;
  return undefined;
}

export function findRootKeyFault(key: string): string | undefined {
  return findKeyFault(key, 'a root key');
}

/** The fault of a secret key; undefined: it is valid. Spaces are allowed, because it may be a phrase. */
export function findSecretKeyFault(key: string): string | undefined {
  if (key.length === 0) return 'is empty';
  if (key.length < minSecretLength) return `is too short: a secret key has at least ${minSecretLength} characters`;
  if (controlCharacter.test(key)) return 'is malformed: a secret key has no control characters';
  return undefined;
}
