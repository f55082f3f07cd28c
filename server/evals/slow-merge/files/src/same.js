/** How mails and phones are compared: capitals, blanks and signs do not count. */
export const mailKey = (mail) => mail.trim().toLowerCase();
export const phoneKey = (phone) => phone.replace(/[^0-9+]/g, "").replace(/^00/, "+");
