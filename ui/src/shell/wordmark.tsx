/** The name, and the wheel in its race. */
export function Wordmark() {
  return (
    <span className="wordmark">
      <svg viewBox="0 0 24 24" aria-hidden="true" className="wordmark-wheel">
        <circle cx="12" cy="9.5" r="6.5" />
        <path className="thin" d="M12 3v13M5.5 9.5h13M7.4 4.9l9.2 9.2M16.6 4.9l-9.2 9.2" />
        <path d="M2 20.5c2.2-2 4.4-2 6.7 0s4.4 2 6.6 0 4.5-2 6.7 0" />
      </svg>
      millrace
    </span>
  );
}
