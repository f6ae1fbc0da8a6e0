/** Work of kind `docker`: a container of an image. */
import { z } from 'zod';
import { buildEnv, envSchema } from '../../documents/environment.ts';
import { filled, text } from '../../documents/fields.ts';
import { defineKind } from '../work.ts';

export interface DockerWork {
  readonly kind: 'docker';
  readonly image: string;
  readonly args: readonly string[];
}

export const docker = defineKind({
  kind: 'docker',
  isLocal: false,
  hasVariables: true,
  summary: 'Run in a container.',
  schema: z
    .strictObject({
      image: text(filled, { minLength: 1, examples: ['alpine:3.20'] }).describe('The image to run.'),
      args: z.array(z.string()).nullish().describe('Arguments for the entrypoint of the image.'),
      env: envSchema,
    })
    .meta({ title: 'Docker', description: 'Run the task in a container.' }),
  templates: ['args'],
  block: z.object({ kind: z.literal('docker'), image: z.string(), args: z.array(z.string()) }),
  build: ({ image, args, env }) => ({ kind: 'docker', image, args: args ?? [], env: buildEnv(env) }),
  expand: ({ kind, image, args }, texts): DockerWork => ({ kind, image, args: args.map((arg) => texts.text(arg)) }),
  view: ({ image, args }) => ({ image, command: args }),
  remedy: () =>
    'this release has no container runtime: give the task a "process: {command: [...]}" block instead, or a "function: {name, input}" one',
});
