/**
 * Protects secrets at rest and on the wire (I12): AES-256-GCM for stash values, HMAC-SHA-256 for the credential of a task.
 * Both keys are derived from one master key. Each sealed value contains the id of its key, so that after a rotation an old
 * key can still open the values that it sealed.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import type { Secrets } from '../../contract/context.ts';
import type { TaskCaller } from '../../contract/roles.ts';
import type { HeldRun } from '../../contract/wire.ts';
import { MillraceError } from '../../errors.ts';

const layout = 1;
const idBytes = 4;
const ivBytes = 12;
const tagBytes = 16;
/** Far longer than any lease. Each call checks the run's lease, which decides whether a credential is still valid. */
const credentialLifeMs = 7 * 24 * 3_600_000;

interface MasterKey {
  readonly id: Buffer;
  readonly sealing: Buffer;
  readonly signing: Buffer;
}

function derive(secret: string): MasterKey {
  const part = (info: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `millrace ${info}`, 32));
  return {
    id: createHash('sha256').update(part('id')).digest().subarray(0, idBytes),
    sealing: part('seal'),
    signing: part('sign'),
  };
}

export interface RunSecrets extends Secrets {
  /** The task of this credential. Undefined if the credential is forged or too old. */
  verifyRun(credential: string): TaskCaller | undefined;
}

/** `keys`: the current master key first, then older ones, which only open values that they sealed. */
export function makeSecrets(keys: readonly [string, ...string[]], now: () => number): RunSecrets {
  const masters = keys.map(derive);
  const current = masters[0] ?? derive(keys[0]);
  return {
    encrypt: (plain) => seal(current, plain),
    decrypt: (sealed) => unseal(masters, sealed),
    signRun: (run) => signRun(current, run, now() + credentialLifeMs),
    verifyRun: (credential) => verifyRun(masters, credential, now()),
    signLink: (claims) => sign(current, linkPrefix, claims),
    verifyLink: (token) => verify(masters, linkPrefix, token),
  };
}

function seal(key: MasterKey, plain: Buffer): Buffer {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', key.sealing, iv);
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.of(layout), key.id, iv, cipher.getAuthTag(), body]);
}

function unseal(keys: readonly MasterKey[], sealed: Buffer): Buffer {
  const id = sealed.subarray(1, 1 + idBytes);
  const key = keys.find((candidate) => candidate.id.equals(id));
  if (sealed[0] !== layout || key === undefined) {
    throw new MillraceError(
      'undecryptable',
      'the value was encrypted with a key that is not configured; add that key to MILLRACE_SECRET_KEY, or store the value again',
    );
  }
  try {
    return decryptWith(key, sealed);
  } catch (error) {
    const message = 'the encrypted value was changed or truncated; store it again';
    throw new MillraceError('undecryptable', message, { cause: error });
  }
}

function decryptWith(key: MasterKey, sealed: Buffer): Buffer {
  const body = 1 + idBytes + ivBytes;
  // without this length a shorter tag would be accepted, which is easier to guess
  const decipher = createDecipheriv('aes-256-gcm', key.sealing, sealed.subarray(1 + idBytes, body), {
    authTagLength: tagBytes,
  });
  decipher.setAuthTag(sealed.subarray(body, body + tagBytes));
  return Buffer.concat([decipher.update(sealed.subarray(body + tagBytes)), decipher.final()]);
}

const runPrefix = 'mrt_';
const linkPrefix = 'mra_';

function signRun(key: MasterKey, run: HeldRun, expiresAtMs: number): string {
  return sign(key, runPrefix, JSON.stringify([run.tenant, run.run, run.lease, expiresAtMs]));
}

/** The prefix is signed as well, except that of credentials, so that one kind of token never passes for another. */
function sign(key: MasterKey, prefix: string, text: string): string {
  const claims = Buffer.from(text).toString('base64url');
  return `${prefix}${claims}.${mac(key, signedText(prefix, claims)).toString('base64url')}`;
}

function signedText(prefix: string, claims: string): string {
  return prefix === runPrefix ? claims : `${prefix}${claims}`;
}

/** The claims of a genuine token. */
function verify(keys: readonly MasterKey[], prefix: string, token: string): string | undefined {
  if (!token.startsWith(prefix)) return undefined;
  const [claims = '', given = ''] = token.slice(prefix.length).split('.');
  const signature = Buffer.from(given, 'base64url');
  const isGenuine = keys.some((key) => {
    const expected = mac(key, signedText(prefix, claims));
    return expected.length === signature.length && timingSafeEqual(expected, signature);
  });
  return isGenuine ? Buffer.from(claims, 'base64url').toString() : undefined;
}

function mac(key: MasterKey, claims: string): Buffer {
  return createHmac('sha256', key.signing).update(claims).digest();
}

function verifyRun(keys: readonly MasterKey[], credential: string, nowMs: number): TaskCaller | undefined {
  const claims = verify(keys, runPrefix, credential);
  if (claims === undefined) return undefined;
  const [tenantId, run, lease, expiresAtMs] = JSON.parse(claims) as [string, string, number, number];
  return expiresAtMs > nowMs ? { kind: 'task', tenantId, run, lease } : undefined;
}
