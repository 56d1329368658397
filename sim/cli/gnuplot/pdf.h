/* pdf.h - makes PDF files reproducible: equal contents, equal bytes. */
#ifndef FRAG_SIM_CLI_GNUPLOT_PDF_H
#define FRAG_SIM_CLI_GNUPLOT_PDF_H

/* Replaces every date in the PDF file at `path`, where programs write the
 * current time, by SOURCE_DATE_EPOCH, or by 1970-01-01 if that is not set. A
 * file that is not a PDF is not changed. */
void pdf_settle_dates(const char *path);

#endif
