import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { formatSecret, newSecret, parseSecret, signBatch } from './signature.ts';

describe('signatures of deliveries', () => {
  it('the vectors of Standard Webhooks give the expected signatures', () => {
    const secret = parseSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
    expect(secret).toBeDefined();
    const body = Buffer.from('{"test": 2432232314}');
    expect(signBatch([secret ?? Buffer.alloc(0)], 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, body)).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });

  it('two secrets give two signatures, the newest first', () => {
    const secrets = [newSecret(), newSecret()];
    const body = Buffer.from('[]');
    const expected = secrets.map((key) => `v1,${createHmac('sha256', key).update('b.7.[]').digest('base64')}`);
    expect(signBatch(secrets, 'b', 7, body)).toBe(expected.join(' '));
  });

  it('a secret is read back as it was written; short, long and broken ones are none', () => {
    const secret = newSecret();
    expect(parseSecret(formatSecret(secret))).toEqual(secret);
    expect(parseSecret(formatSecret(Buffer.alloc(23)))).toBeUndefined();
    expect(parseSecret(formatSecret(Buffer.alloc(65)))).toBeUndefined();
    expect(parseSecret(formatSecret(secret).slice(6))).toBeUndefined();
    expect(parseSecret('whsec_not Base64 at all, whatever follows')).toBeUndefined();
  });
});
