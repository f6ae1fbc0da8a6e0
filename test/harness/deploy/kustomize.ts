/**
 * Renders a folder of deploy/kubernetes as `kubectl kustomize` does. It knows the few features that these folders use, and
 * rejects every other: resources, namespace, labels for selected objects and their pods, tags of images, JSON patches.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments, parse } from 'yaml';
import { z } from 'zod';

const patch = z.strictObject({
  target: z.strictObject({ kind: z.string(), name: z.string() }),
  patch: z.string().transform((text) => operations.parse(parse(text))),
});
const operations = z.array(
  z.discriminatedUnion('op', [
    z.strictObject({ op: z.literal('remove'), path: z.string() }),
    z.strictObject({ op: z.literal('add'), path: z.string(), value: z.json() }),
  ]),
);
const kustomization = z.strictObject({
  apiVersion: z.literal('kustomize.config.k8s.io/v1beta1'),
  kind: z.literal('Kustomization'),
  namespace: z.string().optional(),
  labels: z
    .array(z.strictObject({ includeTemplates: z.literal(true), pairs: z.record(z.string(), z.string()) }))
    .default([]),
  images: z.array(z.strictObject({ name: z.string(), newTag: z.string() })).default([]),
  resources: z.array(z.string()),
  patches: z.array(patch).default([]),
});

/** An object of Kubernetes, in the parts that are rendered here. */
const kubernetesObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional(), labels: labels().optional() }),
});
export type KubernetesObject = z.output<typeof kubernetesObject>;
const podTemplate = z.looseObject({
  metadata: z.looseObject({ labels: labels() }),
  spec: z.looseObject({ containers: z.array(z.looseObject({ image: z.string() })) }),
});
const claims = z.array(z.looseObject({ metadata: z.looseObject({ labels: labels().optional() }) }));
const withTemplate = z.looseObject({
  spec: z.looseObject({ template: podTemplate, volumeClaimTemplates: claims.optional() }),
});

function labels() {
  return z.record(z.string(), z.string());
}

export function renderKustomization(folder: string): KubernetesObject[] {
  const plan = kustomization.parse(parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')));
  const objects = plan.resources.flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? renderKustomization(path) : readObjects(path);
  });
  for (const object of objects) {
    if (plan.namespace !== undefined && object.kind !== 'Namespace') object.metadata.namespace = plan.namespace;
    for (const { pairs } of plan.labels) object.metadata.labels = { ...object.metadata.labels, ...pairs };
    const spec = withTemplate.safeParse(object).data?.spec;
    if (spec !== undefined) renderTemplates(object, spec, plan);
  }
  for (const { target, patch: steps } of plan.patches) {
    const name = new RegExp(`^(?:${target.name})$`);
    const selected = objects.filter((object) => object.kind === target.kind && name.test(object.metadata.name));
    if (selected.length === 0) throw new Error(`${folder}: a patch selects nothing: ${target.kind} ${target.name}`);
    for (const object of selected) for (const step of steps) applyStep(object, step);
  }
  return objects;
}

function readObjects(path: string): KubernetesObject[] {
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    if (document.errors.length > 0) throw new Error(`${path}: ${document.errors.map(String).join('; ')}`);
    return kubernetesObject.parse(document.toJS());
  });
}

/** zod copies what it parses, so the copy is put in place. */
function renderTemplates(
  object: KubernetesObject,
  spec: z.output<typeof withTemplate>['spec'],
  plan: z.output<typeof kustomization>,
): void {
  const labelled = [spec.template, ...(spec.volumeClaimTemplates ?? [])].map(({ metadata }) => metadata);
  for (const metadata of labelled)
    for (const { pairs } of plan.labels) metadata.labels = { ...metadata.labels, ...pairs };
  for (const container of spec.template.spec.containers) {
    const tagged = plan.images.find(({ name }) => name === container.image);
    if (tagged !== undefined) container.image = `${tagged.name}:${tagged.newTag}`;
  }
  object['spec'] = spec;
}

/** One operation of a JSON patch (RFC 6902). */
function applyStep(object: KubernetesObject, step: z.output<typeof operations>[number]): void {
  const keys = step.path.slice(1).split('/');
  const last = keys.pop() ?? '';
  const parent = keys.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], object);
  if (typeof parent !== 'object' || parent === null) throw new Error(`${step.path}: nothing is there`);
  if (Array.isArray(parent)) {
    if (step.op !== 'add' || last !== '-') throw new Error(`${step.path}: lists are only appended to`);
    parent.push(step.value);
  } else if (step.op === 'add') Reflect.set(parent, last, step.value);
  else if (last in parent) Reflect.deleteProperty(parent, last);
  else throw new Error(`${step.path}: nothing is there to remove`);
}
