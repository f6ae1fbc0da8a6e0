import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Mask, maskText, SecretLines } from './mask.ts';

function masked(secrets: readonly string[], pieces: readonly string[]): string {
  const mask = new Mask(new SecretLines(secrets.map((secret) => Buffer.from(secret))));
  return Buffer.concat([...pieces.map((piece) => mask.push(Buffer.from(piece))), mask.flush()]).toString();
}

describe('secrets in the output', () => {
  it.each([
    ['whole', ['hunter2'], ['pw hunter2 and hunter2!'], 'pw *** and ***!'],
    ['split in two', ['hunter2'], ['pw hun', 'ter2!'], 'pw ***!'],
    ['split in many', ['hunter2'], 'pw hunter2!'.split(''), 'pw ***!'],
    ['begun and not ended', ['hunter2'], ['pw hunt', 'ing'], 'pw hunting'],
    ['begun at the very end', ['hunter2'], ['pw hunt'], 'pw hunt'],
    ['one that contains another', ['hunter2', 'hunter2-long'], ['hunter2', '-long hunter2'], '*** ***'],
    ['one that begins inside another', ['abcdef', 'efghij'], ['xabcde', 'fghijx'], 'x***x'],
    ['held back by a long one, behind a short one', ['bbcc', 'ccddeeff', 'ddee'], ['abbccddeex'], 'a******x'],
    ['line by line', ['first line\nsecond line\n'], ['> first line', '\n> second line'], '> ***\n> ***'],
    ['with its newline trimmed', ['hunter2\n'], ['hunter2'], '***'],
    ['too short to hide', ['abc', 'x\ny'], ['abc x y'], 'abc x y'],
  ])('masking of a secret: %s', (_, secrets, pieces, expected) => expect(masked(secrets, pieces)).toBe(expected));

  it('a secret never shows, however the output is split into pieces', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 4, maxLength: 8 });
    const piece = fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' '), maxLength: 12 });
    fc.assert(
      fc.property(
        fc.array(letters, { minLength: 1, maxLength: 3 }),
        fc.array(piece, { maxLength: 8 }),
        (secrets, pieces) => {
          const shown = masked(secrets, pieces);
          for (const secret of secrets) expect(shown).not.toContain(secret);
          expect(shown).toBe(masked(secrets, [pieces.join('')]));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('no byte of a secret is shown, and no other byte is hidden', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 4, maxLength: 9 });
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 40 });
    fc.assert(
      fc.property(fc.array(letters, { minLength: 1, maxLength: 4 }), text, (secrets, output) => {
        const hidden = Array.from(output, () => false);
        const begins = Array.from(output, () => false);
        for (const secret of secrets) {
          for (let at = output.indexOf(secret); at >= 0; at = output.indexOf(secret, at + 1)) {
            begins[at] = true;
            hidden.fill(true, at, at + secret.length);
          }
        }
        // stars at the beginning of a hidden stretch that no earlier secret overlaps
        const reaches = (at: number): boolean =>
          secrets.some((secret) =>
            Array.from({ length: secret.length - 1 }, (_, i) => at - i - 1).some(
              (from) => from >= 0 && output.startsWith(secret, from),
            ),
          );
        const expected = Array.from(output, (letter, i) =>
          !hidden[i] ? letter : begins[i] && !reaches(i) ? '***' : '',
        );
        expect(masked(secrets, output.split(''))).toBe(expected.join(''));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each<[string, string[], string]>([
    ['nearly matches a long one everywhere', [`${'a'.repeat(200_000)}b`], 'a'.repeat(64 * 1024)],
    ['nearly matches a long one behind a short one', ['aaaa', `${'a'.repeat(200_000)}b`], 'a'.repeat(64 * 1024)],
    [
      'is searched for 30,000',
      [Array.from({ length: 30_000 }, (_, i) => `line-${i}`).join('\n')],
      'line-'.repeat(13_000),
    ],
  ])('secrets are masked in linear time where output %s', (_, secrets, chunk) => {
    // a separate search for each secret took hours
    const startedMs = performance.now();
    masked(
      secrets,
      Array.from({ length: 16 }, () => chunk),
    );
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });

  it('a secret of any bytes is masked', () => {
    const secret = Buffer.from([0xff, 0x00, 0xfe, 0x80, 0x81]);
    const mask = new Mask(new SecretLines([secret]));
    const shown = Buffer.concat([
      mask.push(Buffer.from([1, 0xff, 0x00])),
      mask.push(Buffer.from([0xfe, 0x80, 0x81, 2])),
      mask.flush(),
    ]);
    expect(shown).toEqual(Buffer.from([1, ...Buffer.from('***'), 2]));
  });
});

it('output is not copied if there are no secrets', () => {
  const data = Buffer.from('as it is');
  expect(new Mask(new SecretLines([])).push(data)).toBe(data);
});

it('a reason is masked', () => {
  expect(maskText('cannot log in with hunter2', new SecretLines([Buffer.from('hunter2')]))).toBe(
    'cannot log in with ***',
  );
});
