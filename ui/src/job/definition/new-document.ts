/** The initial text of a new job, and functions that read and replace its project. */
import { isMap, isScalar, parseDocument, stringify } from 'yaml';

/** A small example of the main features: a trigger, a command with a placeholder, one task after another. */
export function exampleDocument(project: string, day: string): string {
  return `project: ${stringify(project).trim()}
name: my job
description: What it is for
triggers:
  - name: every day
    start: ${day}T00:00:00Z
    period: 1d
    catchup: none
tasks:
  - name: collect
    depends: [trigger/every day]
    process:
      command: [sh, -c, 'echo "collecting {{instant}}"']
  - name: report
    depends: [task/collect]
    process:
      command: [echo, that went well]
`;
}

export function projectIn(text: string): string {
  const { contents } = parseDocument(text);
  const value: unknown = isMap(contents) ? contents.get('project') : undefined;
  return typeof value === 'string' ? value : '';
}

/** Replaces the project; the rest of the text stays exactly the same. */
export function withProject(text: string, project: string): string {
  const { contents } = parseDocument(text);
  const written = stringify(project).trim();
  const node: unknown = isMap(contents) ? contents.get('project', true) : undefined;
  if (!isScalar(node) || node.range === undefined || node.range === null) return `project: ${written}\n${text}`;
  const [from, to] = node.range;
  return `${text.slice(0, from)}${written}${text.slice(to)}`;
}
