import { describe, expect, it } from 'vitest';
import { readOptions } from './options.ts';

describe('--database', () => {
  it('takes the URL of a PostgreSQL server, and is absent by default', () => {
    const url = 'postgres://me@localhost/postgres';
    expect(readOptions(['handover', '--database', url]).database).toBe(url);
    expect(readOptions(['handover']).database).toBeUndefined();
  });

  it.each(['localhost:5432', 'http://localhost', ''])('refuses %j', (text) => {
    expect(() => readOptions(['handover', `--database=${text}`])).toThrow(
      '--database must be a URL such as postgres://',
    );
  });
});
