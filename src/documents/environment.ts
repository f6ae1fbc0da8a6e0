/** The `env` of a runtime block: its schema in documents, and the form in which it is stored and sent to workers. */
import { z } from 'zod';
import type { Environment } from '../contract/wire.ts';
import { faultOf, text } from './fields.ts';
import { printableFault } from './name.ts';
import { unwrapRead, readEnvLine } from './values.ts';

function envNameFault(value: string): string | undefined {
  if (value === '') return 'must not be empty';
  return value.includes('=') ? 'must not contain =' : undefined;
}

const envValue = z.union(
  [
    z.string().describe('The value itself. Numbers and booleans go in quotes.'),
    z
      .strictObject({
        stash: text(printableFault, { minLength: 1 }).describe('The name of a stash entry that holds the value.'),
      })
      .describe('The value is taken from the stash when the task starts.'),
  ],
  { error: 'must be text (numbers and booleans in quotes), or {stash: name}' },
);

export const envSchema = z
  .union(
    [
      z.array(text(faultOf(readEnvLine), { pattern: '^[^=]+=', examples: ['LEVEL=info'] })),
      z.record(text(envNameFault, { pattern: '^[^=]+$' }), envValue),
    ],
    { error: 'must be a list of KEY=VALUE, or a mapping of names to values' },
  )
  .nullish()
  .describe('Environment variables: a list of `KEY=VALUE`, or a mapping of names to values or to `{stash: name}`.');

/** If a list gives a name twice, the last one counts, as in Docker. */
export function buildEnv(env: z.infer<typeof envSchema>): Environment {
  if (!env) return {};
  if (!Array.isArray(env)) return env;
  const lines = env.map((line) => unwrapRead(readEnvLine(line)));
  return Object.fromEntries(lines.map(({ name, value }) => [name, value]));
}
