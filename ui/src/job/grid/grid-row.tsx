/** One instant of the grid: its head, and a cell for each visible task. */
import { memo } from 'react';
import { formatInstant } from '../../time/format.ts';
import { cellOf, Shape } from './cells.tsx';
import type { GridItem, GridTask } from './use-grid-pages.ts';

export const rowHeight = 26;
export const instantWidth = 176;
const gap = 5;

interface Props {
  readonly row: number;
  /** Undefined while it is loading. */
  readonly item: GridItem | undefined;
  readonly tasks: readonly GridTask[];
  readonly first: number;
  readonly end: number;
  readonly columnWidth: number;
  /** The cell that Tab leads to, and the open one: 0 is the head, tasks count from 1. */
  readonly current: number | undefined;
  readonly chosen: number | undefined;
}

export const GridRow = memo(function GridRow({ row, item, tasks, first, end, columnWidth, current, chosen }: Props) {
  const instant = item === undefined ? '' : formatInstant(item.instant);
  return (
    <div
      role="row"
      aria-rowindex={row + 2}
      className="grid-row"
      data-row={row}
      style={{ transform: `translateY(${row * rowHeight}px)` }}
    >
      <div
        role="rowheader"
        aria-colindex={1}
        className="grid-instant state-ink"
        data-col={0}
        data-state={item?.state}
        data-chosen={chosen === 0 ? '' : undefined}
        tabIndex={current === 0 ? 0 : -1}
        aria-label={item === undefined ? 'on its way' : `${instant}, ${item.state}`}
      >
        {item === undefined ? null : <Shape state={item.state} />}
        <span>{instant}</span>
      </div>
      {tasks.slice(first, end).map((task, i) => {
        const column = first + i + 1;
        const { state, word, shape } = cellOf(item?.cells[column - 1]);
        return (
          <div
            key={task.id}
            role="gridcell"
            aria-colindex={column + 1}
            className="grid-cell state-ink"
            data-col={column}
            data-state={state}
            aria-selected={chosen === column}
            tabIndex={current === column ? 0 : -1}
            aria-label={item === undefined ? 'on its way' : `${task.name}, ${instant}, ${word}`}
            style={{ left: instantWidth + (column - 1) * columnWidth + gap / 2, width: columnWidth - gap }}
          >
            {shape}
          </div>
        );
      })}
    </div>
  );
});
