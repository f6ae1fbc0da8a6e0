/**
 * Work of kind `docker`: a container of an image. `docker` is the word for a container in documents, whatever engine executes it.
 * A field that an engine cannot honour is refused by the engine's runtime, with its path.
 */
import { z } from 'zod';
import { buildEnv, envSchema } from '../../documents/environment.ts';
import { faultOf, filled, text } from '../../documents/fields.ts';
import { readBytes, unwrapRead } from '../../documents/values.ts';
import { defineKind } from '../work.ts';
import { formatBytes, formatVolume, networkFault, readVolume, type Volume } from './volume.ts';

const pullPolicies = ['missing', 'always', 'never'] as const;

export interface DockerWork {
  readonly kind: 'docker';
  readonly image: string;
  /** Empty: those of the image. */
  readonly args: readonly string[];
  /** Undefined: that of the image. The same holds for `cwd` and `user`. */
  readonly entrypoint?: readonly string[];
  readonly cwd?: string;
  readonly user?: string;
  readonly pull: (typeof pullPolicies)[number];
  readonly memoryBytes?: number;
  readonly cpus?: number;
  readonly pids?: number;
  readonly volumes: readonly Volume[];
  /** Undefined: the worker decides. */
  readonly network?: string;
}

/** The least that engines accept. */
const minMemoryBytes = 6 * 1024 * 1024;

const memory = text(
  faultOf((value) => readBytes(value, { min: minMemoryBytes })),
  { minLength: 1, examples: ['512MiB'] },
);

/** The members of the stored block that are there only if the document has them. */
const optional = {
  entrypoint: z.array(z.string()).min(1).optional(),
  cwd: z.string().optional(),
  user: z.string().optional(),
  pull: z.enum(pullPolicies).optional(),
  memory: z.int().optional(),
  cpus: z.number().optional(),
  pids: z.int().optional(),
  volumes: z.array(z.string()).optional(),
  network: z.string().optional(),
};

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
      entrypoint: z.array(z.string()).min(1).nullish().describe('Replaces the entrypoint of the image.'),
      cwd: text(filled, { minLength: 1 }).nullish().describe('The folder to run in, within the container.'),
      user: text(filled, { minLength: 1, examples: ['1000:1000'] })
        .nullish()
        .describe('The user to run as: name or number, and group behind a colon. Default: that of the image.'),
      pull: z
        .enum(pullPolicies)
        .nullish()
        .describe('When the image is pulled. Default: `missing`, if the engine does not have it.'),
      memory: memory.nullish().describe('The limit of its memory, as `512MiB` or `2GiB`. Default: none.'),
      cpus: z.number().min(0.01).max(1024).nullish().describe('The limit of its processors, as 0.5. Default: none.'),
      pids: z.int().min(1).max(4_194_304).nullish().describe('The limit of its processes. Default: 4096.'),
      volumes: z
        .array(text(faultOf(readVolume), { minLength: 1, examples: ['/data/in:/in:ro'] }))
        .max(100)
        .nullish()
        .describe('`SOURCE:TARGET`, or `SOURCE:TARGET:ro`: folders and volumes that the worker allows.'),
      network: text(networkFault, { minLength: 1, examples: ['none'] })
        .nullish()
        .describe('`none`, or a network that the worker allows. Default: the worker decides.'),
    })
    .meta({ title: 'Docker', description: 'Run the task in a container.' }),
  templates: ['args', 'entrypoint', 'cwd'],
  block: z.object({ kind: z.literal('docker'), image: z.string(), args: z.array(z.string()), ...optional }),
  build: ({ image, args, env, memory: limit, ...rest }) => ({
    kind: 'docker' as const,
    image,
    args: args ?? [],
    env: buildEnv(env),
    ...withoutNulls(rest),
    ...(limit === undefined || limit === null ? {} : { memory: unwrapRead(readBytes(limit)) }),
  }),
  expand: ({ kind, image, args, entrypoint, cwd, pull, memory: memoryBytes, volumes, ...rest }, texts): DockerWork => ({
    kind,
    image,
    args: args.map((arg) => texts.text(arg)),
    pull: pull ?? 'missing',
    volumes: (volumes ?? []).map((volume) => unwrapRead(readVolume(volume))),
    ...withoutNulls(rest),
    ...(entrypoint === undefined ? {} : { entrypoint: entrypoint.map((part) => texts.text(part)) }),
    ...(cwd === undefined ? {} : { cwd: texts.text(cwd) }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
  }),
  view: (work) => ({ image: work.image, command: work.args, cwd: work.cwd ?? null, container: viewContainer(work) }),
  remedy: (flags) =>
    `let a worker reach a Docker engine (docs/docker.md), or start another one: millrace worker --runtime docker${flags}`,
});

/** The fields that limit or place the container, as far as the document has them. */
function viewContainer({ entrypoint, user, pull, memoryBytes, cpus, pids, volumes, network }: DockerWork) {
  const texts = {
    entrypoint: entrypoint?.join(' '),
    user,
    pull: pull === 'missing' ? undefined : pull,
    memory: memoryBytes === undefined ? undefined : formatBytes(memoryBytes),
    processors: cpus?.toString(),
    processes: pids?.toString(),
    volumes: volumes.length === 0 ? undefined : volumes.map(formatVolume).join(', '),
    network,
  };
  return withoutNulls(texts);
}

type WithoutNulls<T> = { [K in keyof T]?: NonNullable<T[K]> };

function withoutNulls<T extends object>(fields: T): WithoutNulls<T> {
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(given) as WithoutNulls<T>;
}
