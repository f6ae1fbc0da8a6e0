/** A line of text in the dialogs of the bus, such as a point of the log: the number of an event, a time, or `now`. */
import { Field } from '../kit/field.tsx';

/** `now` is checked by the server: not every point may be it. */
export function faultOfPoint(text: string): string | undefined {
  const point = text.trim();
  if (point === '' || point === 'now' || /^\d{1,15}$/.test(point)) return undefined;
  const isTime = /^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:\d{2})$/.test(point) && !Number.isNaN(Date.parse(point));
  return isTime ? undefined : 'Enter the number of an event, or a time such as 2026-01-31T00:00:00Z.';
}

interface PointProps {
  readonly label: string;
  readonly hint: string;
  readonly fault?: string | undefined;
  readonly value: string;
  readonly change: (value: string) => void;
}

export function PointField({ label, hint, fault, value, change }: PointProps) {
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(wiring) => (
        <input
          {...wiring}
          className="input"
          value={value}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
