/**
 * Numbers over time: stacked bars, or lines. A cursor follows the pointer or the arrow keys, and its values are written out
 * above, so that no information depends on colour or hovering alone.
 */
import { type KeyboardEvent, type PointerEvent, useId, useMemo, useState } from 'react';
import { formatInstant } from '../../time/format.ts';
import { niceScale, type Scale } from './scale.ts';
import { useWidth } from './use-width.ts';

export interface Series {
  readonly name: string;
  /** One of the tokens' colours: `success`. */
  readonly colour: string;
  readonly values: readonly (number | null)[];
}

interface Props {
  readonly title: string;
  readonly kind: 'bars' | 'lines';
  /** When each step begins. */
  readonly times: readonly string[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** The text without a cursor. */
  readonly summary: string;
}

const height = 132;
const inset = { top: 6, bottom: 18, left: 44 };
const plotHeight = height - inset.top - inset.bottom;

export function TimeChart({ title, kind, times, series, format, summary }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [cursor, setCursor] = useState<number>();
  const id = useId();
  const scale = useMemo(() => niceScale(highest(kind, series, times.length)), [kind, series, times.length]);
  const step = Math.max(0, width - inset.left) / Math.max(1, times.length);
  const at = cursor === undefined ? undefined : times[cursor];

  const follow = (event: PointerEvent<SVGSVGElement>): void => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left - inset.left;
    const index = Math.floor(x / step);
    setCursor(index >= 0 && index < times.length ? index : undefined);
  };
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setCursor(Math.min(times.length - 1, Math.max(0, (cursor ?? times.length) + by)));
  };
  return (
    <figure className="chart">
      <figcaption>
        <span id={id} className="chart-title">
          {title}
        </span>
        <span className="chart-note" role={at === undefined ? undefined : 'status'}>
          {at === undefined ? summary : noteAt(at, cursor ?? 0, series, format)}
        </span>
      </figcaption>
      <div ref={box}>
        {width === 0 ? (
          <div className="chart-room" />
        ) : (
          <svg
            width={width}
            height={height}
            role="img"
            aria-labelledby={id}
            tabIndex={0}
            onPointerMove={follow}
            onPointerLeave={() => setCursor(undefined)}
            onBlur={() => setCursor(undefined)}
            onKeyDown={move}
          >
            <Axes scale={scale} times={times} width={width} format={format} />
            <g transform={`translate(${inset.left} ${inset.top})`}>
              {cursor === undefined ? null : (
                <rect className="chart-cursor" x={cursor * step} width={Math.max(1, step)} height={plotHeight} />
              )}
              {kind === 'bars' ? (
                <Bars series={series} top={scale.top} step={step} count={times.length} />
              ) : (
                <Lines series={series} top={scale.top} step={step} />
              )}
            </g>
          </svg>
        )}
      </div>
      <ul className="chart-legend" aria-hidden="true">
        {series
          .filter(({ values }) => values.some((value) => value !== null && value > 0))
          .map(({ name, colour }) => (
            <li key={name}>
              <span style={{ background: `var(--${colour})` }} />
              {name}
            </li>
          ))}
      </ul>
    </figure>
  );
}

function highest(kind: Props['kind'], series: readonly Series[], count: number): number {
  const at = (i: number): readonly number[] => series.map(({ values }) => values[i] ?? 0);
  const heights = Array.from({ length: count }, (_, i) =>
    kind === 'bars' ? at(i).reduce((sum, value) => sum + value, 0) : Math.max(0, ...at(i)),
  );
  return heights.reduce((most, value) => Math.max(most, value), 0);
}

function noteAt(at: string, index: number, series: readonly Series[], format: Props['format']): string {
  const parts = series.flatMap(({ name, values }) => {
    const value = values[index] ?? null;
    return value === null || value === 0 ? [] : [`${name} ${format(value)}`];
  });
  return `${formatInstant(at)} · ${parts.length > 0 ? parts.join(' · ') : 'nothing'}`;
}

interface AxesProps {
  readonly scale: Scale;
  readonly times: readonly string[];
  readonly width: number;
  readonly format: Props['format'];
}

function Axes({ scale: { top, ticks }, times, width, format }: AxesProps) {
  const middle = Math.floor(times.length / 2);
  const marks = [
    { x: inset.left, anchor: 'start', at: times[0] },
    { x: inset.left + (width - inset.left) / 2, anchor: 'middle', at: times[middle] },
    { x: width, anchor: 'end', at: times.at(-1) },
  ] as const;
  return (
    <g className="chart-axes">
      {ticks.map((tick) => {
        const y = inset.top + plotHeight * (1 - tick / top);
        return (
          <g key={tick}>
            <line x1={inset.left} x2={width} y1={y} y2={y} />
            <text x={inset.left - 6} y={y + 3} textAnchor="end">
              {format(tick)}
            </text>
          </g>
        );
      })}
      {marks.map(({ x, anchor, at }) =>
        at === undefined ? null : (
          <text key={anchor} x={x} y={height - 4} textAnchor={anchor}>
            {formatInstant(at).slice(5, 16)}
          </text>
        ),
      )}
    </g>
  );
}

interface PlotProps {
  readonly series: readonly Series[];
  readonly top: number;
  readonly step: number;
}

function Bars({ series, top, step, count }: PlotProps & { readonly count: number }) {
  const below = Array.from({ length: count }, () => 0);
  const gap = step > 4 ? 1 : 0;
  return series.map(({ name, colour, values }) => {
    // one path for each series: a thousand rectangles would be a thousand elements
    const d = values.map((value, i) => {
      if (value === null || value === 0) return '';
      const from = below[i] ?? 0;
      below[i] = from + value;
      const [y1, y2] = [from, from + value].map((n) => plotHeight * (1 - n / top));
      return `M${i * step} ${y1}V${y2}h${step - gap}V${y1}Z`;
    });
    return <path key={name} className="chart-bars" d={d.join('')} style={{ fill: `var(--${colour})` }} />;
  });
}

function Lines({ series, top, step }: PlotProps) {
  return series.map(({ name, colour, values }) => {
    let isDown = false;
    const d = values.map((value, i) => {
      if (value === null) {
        isDown = false;
        return '';
      }
      const point = `${isDown ? 'L' : 'M'}${(i + 0.5) * step} ${plotHeight * (1 - value / top)}${isDown ? '' : 'h0.01'}`;
      isDown = true;
      return point;
    });
    return <path key={name} className="chart-line" d={d.join('')} style={{ stroke: `var(--${colour})` }} />;
  });
}
