/**
 * Encrypts the credentials of exported subscribers with a passphrase: AES-256-GCM under a key by scrypt. The key is derived once
 * for an export, so its salt is the same in all its entries. The name of the subscriber is bound in: entries cannot be swapped.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';

/** The content of a sealed value. Secrets are Base64. */
export interface Credentials {
  readonly uuid: string | null;
  readonly secrets: readonly string[];
}

const layout = 'v1';
const saltBytes = 16;
const ivBytes = 12;
const tagBytes = 16;
/** 64 MiB and about a quarter of a second: passphrases are guessed slowly. */
const cost = { N: 65_536, r: 8, p: 1, maxmem: 96 * 1024 * 1024 };

const derive = promisify<string, Buffer, number, typeof cost, Buffer>(scrypt);

export interface Sealer {
  seal(name: string, credentials: Credentials): string;
}

export async function makeSealer(passphrase: string): Promise<Sealer> {
  const salt = randomBytes(saltBytes);
  const key = await derive(passphrase, salt, 32, cost);
  return {
    seal(name, credentials) {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(name));
      const sealed = Buffer.concat([cipher.update(JSON.stringify(credentials)), cipher.final()]);
      return [layout, Buffer.concat([salt, iv, cipher.getAuthTag(), sealed]).toString('base64')].join('.');
    },
  };
}

export interface Opener {
  /** Undefined: the passphrase is wrong, or the text was changed. */
  open(name: string, sealed: string): Promise<Credentials | undefined>;
}

/** Entries of one export share a key, so it is derived once for each salt. At most `maxSalts`: each costs time and memory. */
export function makeOpener(passphrase: string, maxSalts = 4): Opener {
  const keys = new Map<string, Promise<Buffer>>();
  function keyOf(salt: Buffer): Promise<Buffer> | undefined {
    const text = salt.toString('base64');
    if (!keys.has(text) && keys.size >= maxSalts) return undefined;
    const key = keys.get(text) ?? derive(passphrase, salt, 32, cost);
    keys.set(text, key);
    return key;
  }
  return {
    async open(name, sealed) {
      const [version, encoded = ''] = sealed.split('.');
      const bytes = Buffer.from(encoded, 'base64');
      const key = version === layout ? await keyOf(bytes.subarray(0, saltBytes)) : undefined;
      return key === undefined ? undefined : unseal(key, name, bytes.subarray(saltBytes));
    },
  };
}

function unseal(key: Buffer, name: string, bytes: Buffer): Credentials | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes))
      .setAAD(Buffer.from(name))
      .setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
    const plain = Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]);
    return JSON.parse(plain.toString()) as Credentials;
  } catch {
    return undefined;
  }
}
