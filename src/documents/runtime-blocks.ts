/** The parts of a task document that say how it is run: `docker`, `process`, `function`, and their environment. */
import { z } from 'zod';
import { faultOf, filled, text } from './fields.ts';
import { longestName, printableFault } from './name.ts';
import { readEnvLine } from './values.ts';

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

const env = z
  .union(
    [
      z.array(text(faultOf(readEnvLine), { pattern: '^[^=]+=', examples: ['LEVEL=info'] })),
      z.record(text(envNameFault, { pattern: '^[^=]+$' }), envValue),
    ],
    { error: 'must be a list of KEY=VALUE, or a mapping of names to values' },
  )
  .nullish()
  .describe('Environment variables: a list of `KEY=VALUE`, or a mapping of names to values or to `{stash: name}`.');

export const dockerSchema = z
  .strictObject({
    image: text(filled, { minLength: 1, examples: ['alpine:3.20'] }).describe('The image to run.'),
    args: z.array(z.string()).nullish().describe('Arguments for the entrypoint of the image.'),
    env,
  })
  .meta({ title: 'Docker', description: 'Run the task in a container.' });

export const processSchema = z
  .strictObject({
    command: z
      .array(z.string())
      .min(1)
      .check((context) => {
        if (context.value[0] !== '') return;
        context.issues.push({ code: 'custom', input: '', path: [0], message: 'must name the program' });
      })
      .describe('The program and its arguments. No shell is involved; for one, write [sh, -c, "…"].')
      .meta({ examples: [['sh', '-c', 'echo hello']] }),
    env,
    cwd: text(filled, { minLength: 1 }).nullish().describe('The folder to run in, on the worker’s machine.'),
  })
  .meta({ title: 'Process', description: 'Run the task as a process on the worker’s machine.' });

export const functionSchema = z
  .strictObject({
    name: text(printableFault, { minLength: 1, maxLength: longestName }).describe(
      'The name under which the worker registered the function.',
    ),
    input: z.unknown().optional().describe('Anything JSON can say; given to the function as its input.'),
  })
  .meta({ title: 'Function', description: 'Run a JavaScript function that a worker has registered.' });

export type EnvDocument = z.infer<typeof env>;
