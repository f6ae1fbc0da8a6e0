/** Sentences are for users: no code decides by one. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const rooms = ['control', 'launcher', 'hosts', 'tenants', 'loader', 'gateway/tenants', 'gateway/installation'];

/** `reason.startsWith(…)`, `detail?.includes(…)`, `text === '…'`, `pattern.test(message)` and the like. */
const decisions = [
  /\b(?:reason|detail|trouble|sentence|message|cause|text|why)\)?\??\.(?:startsWith|endsWith|includes|match|split|search)\(/,
  /\b(?:reason|detail|trouble|sentence|message)\s*[!=]==\s*['"`]/,
  /\.test\((?:\w+\.)*(?:reason|detail|trouble|sentence|message)\)/,
];

async function sourcesOf(room: string): Promise<string[]> {
  const names = await readdir(join(root, 'src', room), { recursive: true });
  return names
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => join('src', room, name));
}

it('No file of these rooms compares a sentence', async () => {
  const files = (await Promise.all(rooms.map(sourcesOf))).flat();
  expect(files.length).toBeGreaterThan(60);
  const found: string[] = [];
  for (const file of files) {
    const lines = (await readFile(join(root, file), 'utf8')).split('\n');
    lines.forEach((line, i) => {
      if (decisions.some((decision) => decision.test(line))) found.push(`${file}:${i + 1} ${line.trim()}`);
    });
  }
  expect(found).toEqual([]);
});

it('The rule finds the comparisons that it forbids', () => {
  const bad = [
    "detail.startsWith('its schema')",
    "if (reason?.includes('restored'))",
    "word.reason === 'starting'",
    'lost.test(error.message)',
    "fault.message.split(': ')",
  ];
  expect(bad.filter((line) => !decisions.some((decision) => decision.test(line)))).toEqual([]);
});
