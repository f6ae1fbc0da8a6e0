/** The choice of an engine that is installed here and can be used. */
import type { ReactNode } from 'react';
import { SelectField } from '../kit/field.tsx';
import { usable } from './usable.ts';
import { type Engine, useEngines } from './use-tenants.ts';

interface Props {
  readonly hint: ReactNode;
  /** The version it has now, if any. */
  readonly now?: string | null;
  /** Empty: the server's default. */
  readonly value: string;
  readonly change: (version: string) => void;
}

export function VersionField({ hint, now = null, value, change }: Props) {
  const { data } = useEngines();
  const options = usable(data?.items).map((engine) => ({ value: engine.version, label: labelOf(engine, now) }));
  const isKnown = options.some((option) => option.value === value);
  return (
    <SelectField
      label="Version"
      hint={hint}
      value={value}
      options={isKnown ? options : [{ value, label: value === '' ? 'as the server chooses' : value }, ...options]}
      change={change}
    />
  );
}

function labelOf({ version, running }: Engine, now: string | null): string {
  if (version === now) return `${version} (as now)`;
  return running ? `${version} (this release)` : version;
}
