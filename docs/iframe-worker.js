/* The search of the pages runs in a worker, which browsers refuse to pages opened from a folder.
   There, and only there, a hidden frame of the page runs the worker's script and passes messages on.
   The theme knows by the name of this file that it need not fetch one of the kind from elsewhere. */
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.onmessage = null;
      this.onerror = null;
      this.onmessageerror = null;
      this.inside = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search";
      this.frame.srcdoc = "<!doctype html><title>Search</title>";
      this.frame.addEventListener("load", () => this.begin(new URL(address, location)), { once: true });
      document.documentElement.append(this.frame);
    }

    begin(address) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      const script = inside.document.createElement("script");
      script.addEventListener("load", () => {
        this.inside = inside;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
      script.addEventListener("error", (event) => this.onerror?.(event));
      script.src = address;
      inside.document.head.append(script);
    }

    postMessage(data) {
      if (this.inside === null) this.waiting.push(data);
      else setTimeout(() => this.inside.onmessage?.({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
