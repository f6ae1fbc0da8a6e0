/** A doc that lies is a bug: job documents in the docs are valid, what is shown as a file is that file, links lead somewhere. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { createTenant } from '../../src/tenants/create.ts';
import { reasonCodes } from '../../src/api/explain/endpoints.ts';
import { parseJobText } from '../../src/jobs/document/parse-job.ts';
import { accessRows } from '../harness/access-table.ts';
import { baseMigrations, inDatabase, makeTestLife } from '../harness/tenant-life.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
const text = (path: string): string => readFileSync(join(root, path), 'utf8');

function blocks(page: string, language: string): string[] {
  return [...text(page).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, body = '']) => body,
  );
}

it.each(pages.filter((page) => blocks(page, 'yaml').length > 0))('every job in %s is valid', (page) => {
  for (const body of blocks(page, 'yaml')) expect(parseJobText(body, 'yaml')).toMatchObject({ ok: true, warnings: [] });
});

it('shows the example as it is in its file', () => {
  const shown = blocks('README.md', 'yaml')[0]?.replace('# examples/hello.yaml\n', '');
  expect(shown).toBe(text('examples/hello.yaml'));
});

it.each(pages)('the links of %s lead somewhere', (page) => {
  const links = [...text(page).matchAll(/\]\(([^)#:]+)(#[^)]*)?\)/g)].map(([, target = '']) => target);
  expect(links.filter((target) => !existsSync(join(root, dirname(page), target)))).toEqual([]);
});

it('names in api.md exactly the codes that an explanation can give', () => {
  const [, after = ''] = text('docs/api.md').split('## Why it ran');
  const table = after.split('\n## ', 1)[0] ?? '';
  const told = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) => cell.replaceAll('`', '').split(', '));
  expect(told.sort()).toEqual([...reasonCodes].sort());
});

it('shows in security.md who may call each endpoint', () => {
  const [, after = ''] = text('docs/security.md').split('## Who may call what');
  const section = after.split('\n## ', 1)[0] ?? '';
  expect(section.match(/^\| `.*$/gm)).toEqual(accessRows());
});

it('names in operations.md exactly the variables that the configuration reads', () => {
  const told = new Set(
    text('docs/operations.md')
      .match(/`MILLRACE_[A-Z_]+`/g)
      ?.map((name) => name.slice(1, -1)),
  );
  const source = new Set(
    text('src/config.ts')
      .match(/^ {2}MILLRACE_[A-Z_]+(?=:)/gm)
      ?.map((name) => name.trim()),
  );
  expect([...told].sort()).toEqual([...source].sort());
});

it('shows a migration by hand that a database takes, and what its status is then', async () => {
  const [shown = ''] = blocks('docs/operations.md', 'sql');
  const next = `${baseMigrations.length + 1}`;
  expect(shown).toContain(`record_migration(${next}, '${next.padStart(4, '0')}_`);
  const life = await makeTestLife();
  try {
    const name = life.name();
    await createTenant(life, { name, actor: 'docs' });
    const answers = await inDatabase(life, name, (_, client) => client.query(shown));
    const last = (answers as unknown as { rows: unknown[] }[]).at(-1);
    expect(last?.rows).toEqual([{ version: '0.3.0', newest_migration: '0012_example.sql', migrating: false }]);
  } finally {
    await life.close();
  }
});
