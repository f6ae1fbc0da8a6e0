import { expect, it } from 'vitest';
import { findKeyFault, newSecret } from './secret-text.ts';

it("a new key is accepted by Routemaster's client, which takes 1 to 64 of the characters a-z, 0-9, _ and -", () => {
  for (let i = 0; i < 100; i++) {
    const key = newSecret('mrk_');
    expect(key).toMatch(/^[a-z0-9_-]{1,64}$/);
    expect(findKeyFault(key, 'a key')).toBeUndefined();
  }
});
