import { describe, expect, it } from 'vitest';
import { newId } from '../../kernel/id.ts';
import { makeSecrets } from './secrets.ts';

let now = Date.UTC(2026, 5, 1);
const clock = (): number => now;
const [old, current] = ['the old master key', 'the new master key'];
const plain = Buffer.from('a stash value');
/** A status of 4xx: retrying does not help. */
const unreadable = expect.objectContaining({ code: 'undecryptable', status: 422 }) as Error;
const held = { tenant: 'acme', run: newId(), lease: 2 };

describe('secrets at rest (I12)', () => {
  it('a value is sealed differently each time, and opens again', () => {
    const secrets = makeSecrets([current], clock);
    const [one, two] = [secrets.encrypt(plain), secrets.encrypt(plain)];
    expect(one.equals(two)).toBe(false);
    expect(one.includes(plain)).toBe(false);
    expect([secrets.decrypt(one), secrets.decrypt(two)]).toEqual([plain, plain]);
    expect(secrets.decrypt(secrets.encrypt(Buffer.alloc(0)))).toEqual(Buffer.alloc(0));
  });

  it('after a rotation, an old value opens with the old key and new values are sealed with the new key', () => {
    const sealed = makeSecrets([old], clock).encrypt(plain);
    const rotated = makeSecrets([current, old], clock);
    expect(rotated.decrypt(sealed)).toEqual(plain);
    const anew = rotated.encrypt(plain);
    expect(makeSecrets([current], clock).decrypt(anew)).toEqual(plain);
    expect(() => makeSecrets([current], clock).decrypt(sealed)).toThrow('MILLRACE_SECRET_KEY');
  });

  it('a value does not open if a single bit was changed, or if it was truncated', () => {
    const secrets = makeSecrets([current], clock);
    const sealed = secrets.encrypt(plain);
    for (let i = 0; i < sealed.length; i++) {
      const tampered = Buffer.from(sealed);
      tampered.writeUInt8(tampered.readUInt8(i) ^ 1, i);
      expect(() => secrets.decrypt(tampered)).toThrow(unreadable);
    }
    const nothing = secrets.encrypt(Buffer.alloc(0));
    for (let length = 0; length < nothing.length; length++)
      expect(() => secrets.decrypt(nothing.subarray(0, length))).toThrow(unreadable);
    for (let length = 0; length < sealed.length; length++)
      expect(() => secrets.decrypt(sealed.subarray(0, length))).toThrow(unreadable);
  });
});

describe('credentials of runs', () => {
  it('a credential identifies its run and lease for as long as a run may last', () => {
    const secrets = makeSecrets([current], clock);
    const credential = secrets.signRun(held);
    expect(secrets.verifyRun(credential)).toEqual({ kind: 'task', tenantId: held.tenant, run: held.run, lease: 2 });
    now += 7 * 24 * 3_600_000 - 1;
    expect(secrets.verifyRun(credential)).toBeDefined();
    now += 1;
    expect(secrets.verifyRun(credential)).toBeUndefined();
  });

  it('a credential is valid after a rotation, but not without the key that signed it', () => {
    const credential = makeSecrets([old], clock).signRun(held);
    expect(makeSecrets([current, old], clock).verifyRun(credential)).toBeDefined();
    expect(makeSecrets([current], clock).verifyRun(credential)).toBeUndefined();
  });

  it('a changed, forged or invented credential is rejected', () => {
    const secrets = makeSecrets([current], clock);
    const credential = secrets.signRun(held);
    const [claims = '', signature = ''] = credential.slice(4).split('.');
    const other = Buffer.from(JSON.stringify(['acme', held.run, 3, now + 1e9])).toString('base64url');
    const none = [
      '',
      'mrt_',
      'mrt_.',
      `mrt_${claims}`,
      `mrt_${claims}.`,
      `mrt_.${signature}`,
      `mrt_${other}.${signature}`,
      `mrt_${claims}.${signature.slice(1)}`,
      `mrk_${claims}.${signature}`,
      `mrt_${'x'.repeat(100_000)}`,
    ];
    for (const text of none) expect(secrets.verifyRun(text), text.slice(0, 50)).toBeUndefined();
  });
});
