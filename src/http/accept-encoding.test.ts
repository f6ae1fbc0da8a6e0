import { expect, it } from 'vitest';
import { acceptsGzip } from './accept-encoding.ts';

it('gzip is accepted if the header names it with a positive weight', () => {
  for (const header of ['gzip', 'br, gzip;q=0.5', 'deflate , GZIP', 'gzip ; q=1.0', 'gzip;q=0.001'])
    expect(acceptsGzip(header), header).toBe(true);
  for (const header of [null, '', 'br', 'gzip;q=0', 'gzip;q=0.000', 'gzip;q=', 'gzip;x=1', 'xgzip', 'identity'])
    expect(acceptsGzip(header), String(header)).toBe(false);
});

it('the time to parse the header does not grow with the text that an attacker repeats in it', () => {
  // a header may be 16 KiB long; a regular expression with two adjoining runs of spaces took a second for each of these
  const worst = [
    `gzip${' '.repeat(16_000)}x`,
    `gzip;q=0.${'0'.repeat(16_000)}x`,
    `${' '.repeat(16_000)}gzip;`,
    ','.repeat(16_000),
  ];
  const startedAt = process.cpuUsage();
  for (let round = 0; round < 20; round++) for (const header of worst) expect(acceptsGzip(header)).toBe(false);
  expect(process.cpuUsage(startedAt).user / 1_000).toBeLessThan(1_000);
});
