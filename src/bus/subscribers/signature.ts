/**
 * Signatures of deliveries (Standard Webhooks 1.0.0, scheme v1), and their secrets: HMAC-SHA-256 over `id.timestamp.body`.
 * A secret is `whsec_` and 24 to 64 bytes in Base64.
 */
import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';
const minBytes = 24;
const maxBytes = 64;
const newSecretBytes = 32;

/** One signature for each secret, separated by spaces: while a secret is being replaced, the receiver may know either. */
export function signBatch(secrets: readonly Buffer[], id: string, timestampSeconds: number, body: Uint8Array): string {
  return secrets
    .map((secret) => {
      const hmac = createHmac('sha256', secret).update(`${id}.${timestampSeconds}.`).update(body);
      return `v1,${hmac.digest('base64')}`;
    })
    .join(' ');
}

export function newSecret(): Buffer {
  return randomBytes(newSecretBytes);
}

export function formatSecret(secret: Buffer): string {
  return prefix + secret.toString('base64');
}

/** The bytes of a secret; undefined if the text is none. */
export function parseSecret(text: string): Buffer | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const encoded = text.slice(prefix.length);
  const bytes = Buffer.from(encoded, 'base64');
  const isWhole = bytes.toString('base64').replaceAll('=', '') === encoded.replaceAll('=', '');
  return isWhole && bytes.length >= minBytes && bytes.length <= maxBytes ? bytes : undefined;
}
