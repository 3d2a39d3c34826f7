// Runs before the first paint, so that a chosen theme never flashes in the other one.
try {
  const theme = JSON.parse(localStorage.getItem("halfbyte.settings") ?? "{}")?.theme;
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage that is shut off or holds garbage: the system's theme stays.
}
