/**
 * Loads task functions from a JavaScript module: its named exports, and the members of its default export, that are functions.
 * A file that cannot be used is rejected with its name and the reason.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { types } from 'node:util';
import { MillraceError } from '../../errors.ts';
import type { TaskFunction, TaskFunctions } from './function.ts';

export async function loadFunctions(file: string): Promise<TaskFunctions> {
  const functions = collect(file, await load(file));
  if (functions.size > 0) return Object.fromEntries(functions);
  throw makeFault(file, 'it exports no function; export them by name, or as the members of a default object');
}

async function load(file: string): Promise<object> {
  try {
    const loaded: unknown = await import(pathToFileURL(resolve(file)).href);
    return typeof loaded === 'object' && loaded !== null ? loaded : {};
  } catch (error) {
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    if (code === 'ERR_UNKNOWN_FILE_EXTENSION') {
      throw makeFault(file, 'Node cannot load a file of this kind; compile it to JavaScript first', error);
    }
    throw makeFault(file, error instanceof Error ? error.message : String(error), error);
  }
}

function collect(file: string, loaded: object): Map<string, TaskFunction> {
  const { default: main, ...named } = { default: undefined, ...loaded };
  const functions = new Map<string, TaskFunction>();
  for (const [name, value] of Object.entries(named)) if (isFunction(value)) functions.set(name, value);
  if (isFunction(main)) throw makeFault(file, 'its default export is a function without a name; export it by name');
  for (const [name, value] of Object.entries(main ?? {})) {
    if (!isFunction(value)) throw makeFault(file, `the member "${name}" of its default export is not a function`);
    if (functions.has(name) && functions.get(name) !== value) throw makeFault(file, `it exports "${name}" twice`);
    functions.set(name, value);
  }
  for (const [name, value] of functions) {
    if (types.isGeneratorFunction(value))
      throw makeFault(file, `"${name}" is a generator, whose values nothing would consume`);
  }
  return functions;
}

function isFunction(value: unknown): value is TaskFunction {
  return typeof value === 'function';
}

function makeFault(file: string, why: string, cause?: unknown): MillraceError {
  return new MillraceError('bad_configuration', `The functions of ${file} cannot be used: ${why}`, { cause });
}
