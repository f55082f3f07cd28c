// The panel's start: listens to the extension, draws what it says.

import "@vscode/codicons/dist/codicon.css";
import "./style/panel.css";
import { render } from "preact";
import type { ToPanel } from "../src/pure/chat/panel";
import { App } from "./App";
import { post } from "./base/api";
import { Store } from "./store";

const root = document.getElementById("root") ?? document.body;
const draw = () => render(<App state={store.state} store={store} />, root);
const store: Store = new Store(draw);

window.addEventListener("message", (event: MessageEvent<ToPanel>) => store.receive(event.data));
post({ type: "ready" });
