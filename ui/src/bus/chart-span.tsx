/** The time that charts of the bus cover, which the address holds (`?minutes=`). */
import { Choice } from '../kit/choice.tsx';
import { useUrlState } from '../kit/url-state.ts';

const spans = [
  { value: '60', label: 'Hour' },
  { value: '1440', label: 'Day' },
  { value: '10080', label: 'Week' },
] as const;

/** In minutes. */
export function useChartSpan(): number {
  const [minutes] = useUrlState('minutes', '60');
  return Number(spans.find(({ value }) => value === minutes)?.value ?? '60');
}

export function ChartSpan() {
  const [, choose] = useUrlState('minutes', '60');
  return <Choice label="Time of the charts" options={spans} value={String(useChartSpan())} change={choose} />;
}
