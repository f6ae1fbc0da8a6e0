/** Checks the documentation: job documents are valid, quoted files and tables match the code, links lead somewhere. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { secretVariables } from '../../src/config.ts';
import { createTenant } from '../../src/tenants/create.ts';
import { reasonCodes } from '../../src/api/explain/endpoints.ts';
import { parseFlowText } from '../../src/flows/language/parse-flow.ts';
import { attributeShape } from '../../src/flows/language/shapes.ts';
import { verbs } from '../../src/flows/language/step.ts';
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
const roomPages = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('README.md'))
  .map((name) => join('src', name));
const text = (path: string): string => readFileSync(join(root, path), 'utf8');

function blocks(page: string, language: string): string[] {
  return [...text(page).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, body = '']) => body,
  );
}

it.each(pages.filter((page) => blocks(page, 'yaml').length > 0))('every document in %s is valid', (page) => {
  for (const body of blocks(page, 'yaml')) {
    if (body.startsWith('flow:')) expect(parseFlowText(body, 'yaml')).toMatchObject({ ok: true });
    else expect(parseJobText(body, 'yaml')).toMatchObject({ ok: true, warnings: [] });
  }
});

it('docs/flows.md shows the example as it is in its file, and has a row for each verb and attribute of steps', () => {
  const page = text('docs/flows.md');
  expect(text('examples/flows/expense.yaml')).toContain(blocks('docs/flows.md', 'yaml')[0]);
  const missing = [...verbs, ...Object.keys(attributeShape)].filter((word) => !page.includes(`\`${word}`));
  expect(missing).toEqual([]);
});

it('README.md shows the example as it is in its file', () => {
  const quoted = blocks('README.md', 'yaml')[0]?.replace('# examples/hello.yaml\n', '');
  expect(quoted).toBe(text('examples/hello.yaml'));
});

it.each([...pages, ...roomPages])('every link of %s leads to an existing file', (page) => {
  const links = [...text(page).matchAll(/\]\(([^)#:]+)(#[^)]*)?\)/g)].map(([, target = '']) => target);
  expect(links.filter((target) => !existsSync(join(root, dirname(page), target)))).toEqual([]);
});

const sources = ['src', 'test', 'migrations', 'scripts'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
);

it.each(['docs/internals.md', 'docs/flows/internals.md', 'CONTRIBUTING.md', ...roomPages])(
  'every source file that %s names exists',
  (page) => {
    const names = [...text(page).matchAll(/`([\w./-]+\.(?:ts|sql))`/g)].map(([, name = '']) => name);
    const isThere = (name: string): boolean =>
      name.startsWith('dist/') || sources.some((path) => path === name || path.endsWith(`/${name}`));
    expect(names.filter((name) => !isThere(name))).toEqual([]);
  },
);

it.each(roomPages)('%s has at most 60 lines', (page) => {
  expect(text(page).trimEnd().split('\n').length).toBeLessThanOrEqual(60);
});

it('api.md lists exactly the reason codes of explanations', () => {
  const [, after = ''] = text('docs/api.md').split('## Why it ran');
  const table = after.split('\n## ', 1)[0] ?? '';
  const listed = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) =>
    cell.replaceAll('`', '').split(', '),
  );
  expect(listed.sort()).toEqual([...reasonCodes].sort());
});

it('security.md lists who may call each endpoint', () => {
  const [, after = ''] = text('docs/security.md').split('## Who may call what');
  const section = after.split('\n## ', 1)[0] ?? '';
  expect(section.match(/^\| `.*$/gm)).toEqual(accessRows());
});

it('operations.md names exactly the variables that the configuration reads', () => {
  const named = new Set(
    text('docs/operations.md')
      .match(/`MILLRACE_[A-Z_]+`/g)
      ?.map((name) => name.slice(1, -1)),
  );
  const source = new Set(text('src/config.ts').match(/(?<=^ {2})MILLRACE_[A-Z_]+(?=:)/gm));
  for (const name of secretVariables) source.add(name);
  expect([...named].sort()).toEqual([...source].sort());
});

it('the manual migration in operations.md works, and gives the status that it shows', async () => {
  const [example = ''] = blocks('docs/operations.md', 'sql');
  const next = `${baseMigrations.length + 1}`;
  expect(example).toContain(`record_migration(${next}, '${next.padStart(4, '0')}_`);
  const life = await makeTestLife();
  try {
    const name = life.name();
    await createTenant(life, { name, actor: 'docs' });
    const answers = await inDatabase(life, name, (_, client) => client.query(example));
    const last = (answers as unknown as { rows: unknown[] }[]).at(-1);
    expect(last?.rows).toEqual([
      { version: '0.3.0', newest_migration: `${next.padStart(4, '0')}_example.sql`, migrating: false },
    ]);
  } finally {
    await life.close();
  }
});
