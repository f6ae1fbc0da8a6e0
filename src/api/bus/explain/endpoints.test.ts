import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { deliveryReasonCodes } from './endpoints.ts';

it('docs/bus.md documents every code of a reason, and no other', () => {
  const page = readFileSync(new URL('../../../../docs/bus.md', import.meta.url), 'utf8');
  const [section = ''] = page.slice(page.indexOf('## Why a delivery has not happened') + 3).split('\n## ', 1);
  const rows = section.match(/^\| `.*?\|/gm) ?? [];
  const codes = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, code = '']) => code));
  expect(new Set(codes)).toEqual(new Set(deliveryReasonCodes));
});
