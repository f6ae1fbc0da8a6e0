/**
 * Instants by tasks, of which only the visible part is drawn: a window of rows and columns that slides over the whole grid.
 * Rows are reused as it slides, so ten thousand instants cost no more than thirty.
 */
import { type PointerEvent, useRef } from 'react';
import { Empty } from '../../kit/empty.tsx';
import { Failure } from '../../kit/failure.tsx';
import { Loading } from '../../kit/loading.tsx';
import { GridHead, headHeight, slanted } from './grid-head.tsx';
import { GridRow, instantWidth, rowHeight } from './grid-row.tsx';
import { type GridTask, useGridPages } from './use-grid-pages.ts';
import { useGridFocus } from './use-grid-focus.ts';
import { useScroll } from './use-scroll.ts';
import { useSteadyRows } from './use-steady-rows.ts';
import { inSight, windowLength } from './window.ts';

interface Props {
  readonly job: string;
  readonly at: number;
  /** Whether that is simply now. */
  readonly follow: boolean;
  readonly chosen: { readonly instant: string | undefined; readonly task: string | undefined };
  readonly open: (instant: string, task: GridTask | undefined) => void;
}

const leastColumn = 26;
const mostColumn = 140;
const noTasks: readonly GridTask[] = [];

export function GridTable({ job, at, follow, chosen, open }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const { top, left, width, height, read } = useScroll(box);
  const sight = { scroll: top, size: rowHeight, more: 6 };
  const pages = useGridPages(job, at, inSight({ ...sight, room: height, count: Number.MAX_SAFE_INTEGER }));
  const tasks = pages.tasks ?? noTasks;
  const cellsWidth = Math.max(0, width - instantWidth);
  const columnWidth = Math.max(leastColumn, Math.min(mostColumn, Math.floor(cellsWidth / Math.max(1, tasks.length))));
  const head = headHeight(columnWidth, tasks);
  const bodyWidth = instantWidth + tasks.length * columnWidth + (slanted(columnWidth) ? head : 0);
  const room = { width: cellsWidth, height: Math.max(rowHeight, height - head) };
  const rows = inSight({ ...sight, room: room.height, count: pages.total });
  const columns = inSight({ scroll: left, room: cellsWidth, size: columnWidth, count: tasks.length, more: 4 });

  const openAt = ({ row, column }: { row: number; column: number }): void => {
    const item = pages.itemAt(row);
    if (item !== undefined) open(item.instant, tasks[column - 1]);
  };
  const focus = useGridFocus({
    box,
    rows: pages.total,
    columns: tasks.length,
    rowHeight,
    columnWidth,
    room,
    open: openAt,
  });
  const firstRow = Math.floor(top / rowHeight);
  const { newer, newestOnTop } = pages;
  useSteadyRows({ box, newer, newestOnTop, follow, onShift: focus.shift, onScroll: read });

  const current = focus.place.row >= rows.first && focus.place.row < rows.end ? focus.place.row : firstRow;
  const chosenColumn = chosen.task === undefined ? 0 : tasks.findIndex(({ id }) => id === chosen.task) + 1;
  const pool = windowLength({ ...sight, room: room.height });
  const isEmpty = pages.newestOnTop && pages.oldestKnown && pages.total === 0;
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/interactive-supports-focus -- its cells take the focus */}
      <div
        ref={box}
        className="grid"
        role="grid"
        aria-label="Instants by tasks"
        aria-rowcount={pages.oldestKnown && newestOnTop ? pages.total + 1 : -1}
        aria-colcount={tasks.length + 1}
        tabIndex={-1}
        hidden={isEmpty}
        onPointerOver={nameCell}
        {...focus.handlers}
      >
        <GridHead
          tasks={tasks}
          range={columns}
          columnWidth={columnWidth}
          instantWidth={instantWidth}
          width={bodyWidth}
          height={head}
        />
        <div className="grid-body" role="rowgroup" style={{ height: pages.total * rowHeight, width: bodyWidth }}>
          {Array.from({ length: rows.end - rows.first }, (_, i) => {
            const row = rows.first + i;
            const item = pages.itemAt(row);
            return (
              <GridRow
                key={row % pool}
                row={row}
                item={item}
                tasks={tasks}
                first={columns.first}
                end={columns.end}
                columnWidth={columnWidth}
                current={row === current ? focus.place.column : undefined}
                chosen={item !== undefined && item.instant === chosen.instant ? chosenColumn : undefined}
              />
            );
          })}
        </div>
      </div>
      {isEmpty ? <NoInstants /> : null}
      {pages.tasks === undefined && pages.error === null ? <Loading what="Reading the grid" /> : null}
      {pages.error === null ? null : <Failure error={pages.error} retry={pages.refetch} />}
    </>
  );
}

/** The tooltip of a cell is its label, written when the pointer is there and not for each cell that slides by. */
function nameCell({ target }: PointerEvent): void {
  const cell = target instanceof Element ? target.closest<HTMLElement>('[data-col]') : null;
  if (cell !== null) cell.title = cell.getAttribute('aria-label') ?? '';
}

function NoInstants() {
  return (
    <Empty title="Nothing has run yet">
      <p>Each instant gets a row here the moment a trigger fires for it, or when the job is run by hand.</p>
    </Empty>
  );
}
