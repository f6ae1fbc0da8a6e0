/** Groups of statuses that a list can be filtered by. An address may also name statuses themselves: `incident,failed`. */
export const statusChoices = [
  { value: '', label: 'All' },
  { value: 'live', label: 'Under way' },
  { value: 'incident', label: 'Incidents' },
  { value: 'paused', label: 'Paused' },
  { value: 'done', label: 'Done' },
  { value: 'failed', label: 'Failed' },
  { value: 'cancelled', label: 'Cancelled' },
] as const;

const groups: Readonly<Record<string, string>> = { live: 'running,waiting,paused,incident' };

interface Choice {
  /** As in the address. */
  readonly value: string;
  /** As the server takes it; undefined: all. */
  readonly statuses: string | undefined;
}

export function statusChoice(asked: string): Choice {
  return { value: asked, statuses: asked === '' ? undefined : (groups[asked] ?? asked) };
}
