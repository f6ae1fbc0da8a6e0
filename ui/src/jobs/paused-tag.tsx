/** Marks a job that starts nothing. */
export function PausedTag() {
  return (
    <span className="tag" title="starts nothing until it is unpaused; what runs, finishes">
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M5.5 4v8M10.5 4v8" />
      </svg>
      paused
    </span>
  );
}
