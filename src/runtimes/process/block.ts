/** Work of kind `process`: a command on the worker's machine. */
import { z } from 'zod';
import { buildEnv, envSchema } from '../../documents/environment.ts';
import { filled, text } from '../../documents/fields.ts';
import { defineKind } from '../work.ts';

export interface ProcessWork {
  readonly kind: 'process';
  readonly command: readonly string[];
  readonly cwd: string | null;
}

export const process = defineKind({
  kind: 'process',
  isLocal: true,
  hasVariables: true,
  summary: 'Run a process.',
  schema: z
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
      env: envSchema,
      cwd: text(filled, { minLength: 1 }).nullish().describe('The folder to run in, on the worker’s machine.'),
    })
    .meta({ title: 'Process', description: 'Run the task as a process on the worker’s machine.' }),
  templates: ['command', 'cwd'],
  block: z.object({ kind: z.literal('process'), command: z.array(z.string()).min(1), cwd: z.string().nullable() }),
  build: ({ command, env, cwd }) => ({ kind: 'process', command, env: buildEnv(env), cwd: cwd ?? null }),
  expand: ({ kind, command, cwd }, texts): ProcessWork => ({
    kind,
    command: command.map((part) => texts.text(part)),
    cwd: cwd === null ? null : texts.text(cwd),
  }),
  view: ({ command, cwd }) => ({ command, cwd }),
  remedy: (flags) => `start one: millrace worker --runtime process${flags}`,
});
