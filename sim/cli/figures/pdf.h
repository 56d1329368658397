/* pdf.h - the same page, the same bytes. */
#ifndef FRAG_SIM_CLI_FIGURES_PDF_H
#define FRAG_SIM_CLI_FIGURES_PDF_H

/* Programs write the time of day into a PDF. Every date in the file at path
 * becomes that of SOURCE_DATE_EPOCH, or of the epoch where that is not set. A
 * file that is no PDF stays as it is. */
void pdf_settle_dates(const char *path);

#endif
